"""Model shapes, clusters, workloads, and the instances made of them."""
