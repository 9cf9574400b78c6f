import { DatabaseSync } from "node:sqlite";
import { recordsConformance } from "@portico/test/conformance/records";
import { appRecords } from "./own-storage.ts";

recordsConformance("playground/own-storage.ts", () => appRecords({ database: new DatabaseSync(":memory:") }), { shared: true });
