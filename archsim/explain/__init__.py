"""Why an op takes the time it takes: the equations of the model for one layer, with their numbers."""
