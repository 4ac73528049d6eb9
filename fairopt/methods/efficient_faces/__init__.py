"""The largest objective of a linear program among its Pareto-efficient shares: branch and bound over efficient faces.

An allocation is Pareto-efficient if and only if it maximises a sum of throughputs with positive weights. Such
allocations are a union of faces of the polytope of all allocations, which is not convex. Shares are in one of them if
and only if no trade in a circle improves them (`fairopt.methods.efficient_faces.trades`). So of every circle that
improves an optimum an efficient allocation lacks one pair of a user and a type: that is what the search branches over
(`fairopt.methods.efficient_faces.search`). Each node is a linear program, solved in Fractions.

Demands are not covered: with them, other trades improve, too.
"""

from fairopt.methods.efficient_faces.search import EfficientFaces, TreeNode, best_efficient, giving_out_all
from fairopt.methods.efficient_faces.trades import efficient_weights, improving_circle

__all__ = ["EfficientFaces", "TreeNode", "best_efficient", "efficient_weights", "giving_out_all", "improving_circle"]
