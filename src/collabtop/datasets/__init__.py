"""Ready-made arms: a stand-in for the paper's instances, standard hard instances, and MovieLens releases."""

from collabtop.datasets.embedded import movielens_like as movielens_like
from collabtop.datasets.embedded import movielens_like_groups as movielens_like_groups
from collabtop.datasets.instances import arithmetic as arithmetic
from collabtop.datasets.instances import equal_gaps as equal_gaps
from collabtop.datasets.instances import geometric as geometric
from collabtop.datasets.instances import one_good_arm as one_good_arm
from collabtop.datasets.instances import says_disjoint as says_disjoint
from collabtop.datasets.instances import set_disjointness as set_disjointness
from collabtop.datasets.instances import uniform_means as uniform_means
from collabtop.datasets.releases import movielens as movielens
from collabtop.datasets.releases import movielens_groups as movielens_groups
