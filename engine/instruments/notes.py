"""What every reading says about itself, in every output."""

from collections.abc import Mapping

NOT_A_CANDIDATE = "NOT an amendment candidate; adoption goes only through amend-constitution"

CIRCULARITY = (
    "Convergence is partly circular, through three channels: the patterns were formed while the live text was acted "
    "on; the view that selects them is seeded from the live text; both arms' prompts impose the same shape."
)

SAMPLING = "The patterns are a friction-biased sample: values that work silently leave none."

NO_THRESHOLD = "A reading decides nothing and feeds no gate, ranking or threshold; it is for the human at the gate."

SINGLE_RUN = "wiring proof, not evidence: one run has no noise floor"

NOTES: Mapping[str, str] = {
    "status": NOT_A_CANDIDATE,
    "circularity": CIRCULARITY,
    "sampling": SAMPLING,
    "use": NO_THRESHOLD,
}


def notes_text() -> str:
    """Return the notes as lines of text."""
    return "\n".join(f"* {note}" for note in NOTES.values())
