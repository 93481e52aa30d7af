// Shows the view that belongs to the address.

import { showList } from "./list.js";
import { showRun } from "./run.js";

const [, , name] = location.pathname.split("/");
if (location.pathname.startsWith("/runs/")) showRun(decodeURIComponent(name));
else showList();
