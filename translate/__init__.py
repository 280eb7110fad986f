"""Conversions into and out of the program representation of `migraphx`."""
