// Shows the view that belongs to the address.

import { showList } from "./list.js";
import { showRun } from "./run.js";
import { showStudy } from "./study.js";

const [, kind, name] = location.pathname.split("/");
if (kind === "runs") showRun(decodeURIComponent(name));
else if (kind === "studies") showStudy(decodeURIComponent(name));
else showList();
