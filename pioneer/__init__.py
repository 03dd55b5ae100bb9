"""I/O pioneering: trace a program once, characterise its I/O, synthesise it at any scale and replay it."""
