"""The vault: field states kept with the point each carries the origin to, recalled exactly by point distance."""

from engine.vault.vault import Recall as Recall
from engine.vault.vault import Status as Status
from engine.vault.vault import Vault as Vault
