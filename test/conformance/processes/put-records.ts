import { postgresRecords } from "@portico/cluster/records/postgres";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { openAdapter } from "../open-adapter.ts";

// A process of its own: it opens the store at once with its siblings; told `go`, it writes records, ten at a time, and sends their
// versions.
const [place = "", name = "", count = "0"] = process.argv.slice(2);
const adapter = place.includes("://") ? postgresRecords({ url: place }) : sqliteRecords({ path: place });
const { port, close } = await openAdapter(adapter);
const notes = port.collection<{ text: string }>({ name: "notes", indexes: { text: ["text"] } });
process.once("message", async () => {
  const versions: number[] = [];
  for (let at = 0; at < Number(count); at += 10) {
    const ids = Array.from({ length: 10 }, (_, next) => `${name}-${at + next}`);
    versions.push(
      ...(await Promise.all(ids.map((id) => notes.put(id, { text: name }, "absent")))).map((stored) => stored.version),
    );
  }
  await close();
  process.send?.(versions);
  process.disconnect();
});
process.send?.("ready");
