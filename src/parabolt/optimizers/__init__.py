"""Ask/tell optimizers on finite candidate sets. They never see a table or a problem."""
