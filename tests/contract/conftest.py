"""What the tests of this directory share."""

from tests.contract.by_hand import play as play
