"""Makes checkpoints in the computations of a program, in the folder that CHECKPOINTS_OF_A_TEST names.

Python imports a module of this name at its start. A test puts this folder on the path of a program, which is
run as it is. A computation that had ended before the program was killed is run again.
"""

import dataclasses
import itertools
import os
import shutil
from pathlib import Path
from typing import Any

FOLDER = os.environ.get("CHECKPOINTS_OF_A_TEST", "")

if FOLDER:
    import pointstamp as ps
    from pointstamp.runtime import execution

    _execute = execution.execute
    _numbers = itertools.count()

    def _recorded(
        main: Any, *, workers: int = 1, processes: int | None = None, config: Any = None, **given: Any
    ) -> Any:
        alone = processes is None and (config is None or config.processes == 1)
        if not alone or (config is not None and config.checkpoint is not None):
            return _execute(main, workers=workers, processes=processes, config=config, **given)
        place = Path(FOLDER, str(next(_numbers)))
        if config is None:
            config = ps.Config(workers=workers)
        config = dataclasses.replace(config, checkpoint=ps.Checkpoint(place, every=0.001))
        try:
            return _execute(main, config=config, **given)
        except ps.CheckpointError as error:
            if "of a computation that has ended" not in str(error):
                raise
            shutil.rmtree(place)
            return _execute(main, config=config, **given)

    execution.execute = ps.execute = _recorded
