"""The problems in other libraries, and their optimizers in our studies: one file per library."""
