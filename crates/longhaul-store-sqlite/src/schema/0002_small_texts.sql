-- Small texts are in the row of their task, so that most tasks have no row in `input` and `outcome`.
ALTER TABLE task ADD COLUMN small_input   TEXT; -- the arguments
ALTER TABLE task ADD COLUMN small_outcome TEXT; -- settled: the body of a result
