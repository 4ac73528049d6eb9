"""Methods: where a problem's structure lets it be solved faster than by a solver, and proven as well.

A method works on arrays in floats (on efficient faces: in Fractions) and knows no policy. Each folder solves one
problem, and its package holds what is to be called:

* `fairopt.methods.level`: `raise_level`, the largest common level that all users can reach (max-min, equal throughput);
* `fairopt.methods.water_filling`: `fill`, level after level until no user can get more;
* `fairopt.methods.envy_free`: `envy_free_shares`, the largest total throughput that nobody envies;
* `fairopt.methods.efficient_faces`: `best_efficient`, the best of a program's points whose shares are Pareto-efficient;
* `fairopt.methods.eisenberg_gale`: `solve.maximal_nash_welfare`, `exact.exact_equilibrium`, and `bounds.nash_bound`;
* `fairopt.methods.gang_assignment`: `solve_gangs`, which jobs run on which type of GPU in one round;
* `fairopt.methods.columns`: schedules of jobs with workers and parameter servers, by columns and prices.

What comes back is a `Solution`, with the optimum between ``lower`` and ``upper``, whatever was rounded, and the duals
that prove it. Files say their role: ``problem`` (what is asked, in the method's own units, and where a
similar problem begins), ``solve`` (the entry), ``bounds`` (what is proved).
"""
