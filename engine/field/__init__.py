"""The field: versor states, their propagation by sandwich products, and the closure that is measured at every step."""

from engine.field.closure import TOLERANCE as TOLERANCE
from engine.field.closure import Closure as Closure
from engine.field.closure import assert_closed as assert_closed
from engine.field.closure import checked as checked
from engine.field.closure import checked_value_and_grad as checked_value_and_grad
from engine.field.closure import measure_closure as measure_closure
from engine.field.holonomy import holonomy as holonomy
from engine.field.mesh import data_mesh as data_mesh
from engine.field.mesh import propagate_over as propagate_over
from engine.field.mesh import run_stream as run_stream
from engine.field.propagate import Propagated as Propagated
from engine.field.propagate import propagate as propagate
from engine.field.propagate import propagate_parallel as propagate_parallel
from engine.field.propagate import run as run
from engine.field.state import FieldState as FieldState
