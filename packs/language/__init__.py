"""Language packs: text rules, frozen data model, loader. The data lie beside this package, in `packs/<lang>/`."""
