"""The figures that `adult.rs` compares with: errors of scikit-learn's trees on Adult.

    pip install scikit-learn pandas
    python scikit_learn.py ../../../tests/data/adult/adult.csv.gz

Prints, for the divisions of seeds 0 to 4, the error of a CART tree by entropy on the held-out third;
its cost-complexity penalty is chosen by cross-validation on the other two thirds.
"""

import sys

import numpy
import pandas
import sklearn
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

MASK = (1 << 64) - 1


def two_thirds(count, seed):
    """The division of `two_thirds` in `holdout.rs`: which rows are learnt from."""
    wanted = count * 2 // 3
    learning = numpy.zeros(count, dtype=bool)
    for number in range(count):
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        mixed = seed
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        mixed ^= mixed >> 31
        if ((mixed >> 32) * (count - number)) >> 32 < wanted:
            wanted -= 1
            learning[number] = True
    return learning


table = pandas.read_csv(sys.argv[1], skipinitialspace=True)
classes = table.pop("income")
features = pandas.get_dummies(table)
print("scikit-learn", sklearn.__version__, "rows", len(table))
errors = []
for seed in range(5):
    learning = two_thirds(len(table), seed)
    tree = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, random_state=0)
    penalties = {"ccp_alpha": [0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002]}
    search = GridSearchCV(tree, penalties, cv=3).fit(features[learning], classes[learning])
    errors.append(1 - search.score(features[~learning], classes[~learning]))
    print(seed, search.best_params_["ccp_alpha"], round(errors[-1], 4))
print("mean", round(float(numpy.mean(errors)), 4))
