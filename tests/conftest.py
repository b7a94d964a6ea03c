"""What holds for all tests."""

import signal

# Started in the background of a script, Python leaves Ctrl-C ignored, and so do all processes that it starts: tests that send one would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
