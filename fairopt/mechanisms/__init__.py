"""Automated mechanism design: rules that users cannot gain by deceiving, searched for by exact linear programs.

What a rule gives at each of finitely many profiles of reports are the variables of a linear program (`Design`), and
what is asked of the rule are its rows. Where the reports are single points, no rule over all speedups is better than
the optimum: it would be a solution if it were asked about these reports only. Where they are `ranges` that cover all
reports of two types, a solution is itself a rule over all speedups, and the optimum is what that rule guarantees.

>>> from fairopt.backends.exact import Exact
>>> design = Design(Profiles.every(grid(2, 4, positive=False), users=2))
>>> design.strategy_proof()
>>> design.proportionally_fair()
>>> print(Exact().solve(design.program()).objective)  # no truthful rule guarantees more of proportional fairness
12/13

Source: Conitzer and Sandholm, Complexity of mechanism design, UAI 2002; Guo and Conitzer, Strategy-proof allocation of
multiple items between two agents without payments or priors, AAMAS 2010.
"""

from fairopt.mechanisms.design import Design
from fairopt.mechanisms.efficient import Refutation, efficient_holders, fewest, refute
from fairopt.mechanisms.profiles import Profiles, grid, ranges

__all__ = ["Design", "Profiles", "Refutation", "efficient_holders", "fewest", "grid", "ranges", "refute"]
