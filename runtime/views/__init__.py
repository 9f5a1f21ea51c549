"""How a run is shown while it goes on: as a picture that moves, as lines, or as JSON."""
