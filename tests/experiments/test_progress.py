"""Progress says how far a job is, seldom, with the time that is left."""

from experiments.progress import Progress


def test_it_says_how_much_is_done_and_left():
    now, said = [0.0], []
    progress = Progress(1000, every=10.0, clock=lambda: now[0], say=said.append)
    first = progress.part(0, 500)
    now[0] = 9.0
    first(100, 400)
    assert said == []
    now[0] = 20.0
    first(200, 400)
    now[0] = 25.0
    first(300, 400)
    now[0] = 40.0
    progress.part(500, 500)(0, 0)
    assert said == ["250 of 1000 prompts, 20 s, about 60 s left", "500 of 1000 prompts, 40 s, about 40 s left"]


def test_a_resumed_job_reckons_with_what_it_made_itself():
    now, said = [0.0], []
    progress = Progress(1000, every=10.0, clock=lambda: now[0], say=said.append)
    part = progress.part(800, 100)
    now[0] = 30.0
    part(10, 10)
    assert said == ["900 of 1000 prompts, 30 s, about 30 s left"]
