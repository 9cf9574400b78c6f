import { openSync, writeSync } from "node:fs";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { openAdapter } from "../../conformance/open-adapter.ts";

// Runs in its own process, which the test kills. Sixty-four writers put record after record, and each immediately reports the written
// record.
const [path = "", life = "", acknowledgements = ""] = process.argv.slice(2);
// A file accepts every line at once, while a pipe may be full. It also keeps the lines after the kill.
const said = openSync(acknowledgements, "a");
const { port } = await openAdapter(sqliteRecords({ path }));
const entries = port.collection<{ life: string; text: string }>({ name: "entries", indexes: { life: ["life"] } });
const pairs = port.collection<{ of: string }>({ name: "pairs" });

async function writeOn(writer: number): Promise<void> {
  for (let at = 0; ; at++) {
    const id = `${life}-${writer}-${at}`;
    const entry = { life, text: "x".repeat(at % 2000) };
    // The writers are out of step, so that a batch is in progress at every moment.
    if ((at + writer) % 3) await entries.put(id, entry);
    else await port.batch([entries.write.put(id, entry), pairs.write.put(id, { of: id })]);
    writeSync(said, `${id}\n`);
  }
}
for (let writer = 0; writer < 64; writer++) void writeOn(writer);
process.send?.("writing");
