import { idsConformance } from "@portico/test/conformance/ids";
import { countedIds } from "./counted-ids.ts";

idsConformance("counted", () => countedIds(), { foretold: true });
