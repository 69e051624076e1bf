"""The what-if page: a small server on this computer, which draws a change of a device while it is made."""
