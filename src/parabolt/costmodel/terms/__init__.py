"""One function per term of step time, memory and failure, with equation and source."""
