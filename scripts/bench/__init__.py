"""Benchmarks: ratios within one run, floors and peers beside our own figures."""
