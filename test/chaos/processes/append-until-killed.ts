import { openSync, writeSync } from "node:fs";
import { postgresLog } from "@portico/cluster/log/postgres";
import { sqliteLog } from "@portico/adapters/log/sqlite";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { defineAdapter, ports } from "@portico/core";
import { openAdapter } from "../../conformance/open-adapter.ts";

// Runs in its own process, which the test kills. Thirty-two writers append entry after entry, every second one together with a record. Each
// writer immediately reports the stored entry.
const [place = "", life = "", acknowledgements = ""] = process.argv.slice(2);
const said = openSync(acknowledgements, "a");
const isPostgres = place.includes("://");
let records: ports.Records | undefined;
const seenRecords = defineAdapter({
  name: "records/seen",
  port: ports.records,
  needs: {},
  async open(_given, _options, scope) {
    const { spec, options } = isPostgres ? postgresRecords({ url: place }) : sqliteRecords({ path: place });
    records = await spec.open({}, options, scope);
    return records;
  },
});
const { port: log } = await openAdapter(isPostgres ? postgresLog({}) : sqliteLog({}), [seenRecords(undefined)]);
const marks = records!.collection<{ readonly sequence: string }>({ name: "marks" });

async function writeOn(writer: number): Promise<void> {
  const stream = `${life}-${writer}`;
  for (let at = 1; ; at++) {
    const entry = { at, text: "x".repeat(at % 2000) };
    if (at % 2) await log.append(stream, entry);
    else
      await log.appendAll([{ stream, entry }], { records: [marks.write.put(`${stream}-${at}`, { sequence: stream }, "absent")] });
    writeSync(said, `${stream} ${at}\n`);
  }
}
for (let writer = 0; writer < 32; writer++) void writeOn(writer);
process.send?.("writing");
