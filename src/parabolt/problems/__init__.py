"""Black boxes over candidates: what an optimizer is run against."""
