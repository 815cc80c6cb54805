"""Identity: value axes as directions at infinity, and the persona motor that makes a pack speak at every step."""

from engine.identity.manifold import (
    AXIS_CAPACITY as AXIS_CAPACITY,
)
from engine.identity.manifold import (
    IdentityManifold as IdentityManifold,
)
from engine.identity.manifold import (
    IdentityReading as IdentityReading,
)
from engine.identity.manifold import (
    ValueAxes as ValueAxes,
)
from engine.identity.manifold import (
    infinity_map as infinity_map,
)
from engine.identity.manifold import (
    manifold_from_pack as manifold_from_pack,
)
from engine.identity.manifold import (
    read_identity as read_identity,
)
from engine.identity.persona import persona_motor as persona_motor
