//! Hierarchies as rows, one a leaf: `leaf;level1;...;top`, the form that ARX and Amnesia use.
