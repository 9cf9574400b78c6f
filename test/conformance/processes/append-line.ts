import { systemClock } from "@portico/adapters/clock/system";
import { sharedFolderDocuments } from "@portico/cluster/documents/shared-folder";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { ports } from "@portico/core";
import { openAdapter } from "../open-adapter.ts";

// A process of its own: told `go`, it adds lines to one document, each to what it has just read, and sends those that were saved.
const [url = "", dir = "", name = "", count = "0"] = process.argv.slice(2);
const others = [postgresRecords({ url, poolSize: 2 }), systemClock()];
const { port, close } = await openAdapter(sharedFolderDocuments({ id: "agents", dir }), others);
process.once("message", async () => {
  const saved: string[] = [];
  while (saved.length < Number(count)) {
    const { text = "", version = "absent" } = (await port.read("a/agent.json")) ?? {};
    const line = `${name}-${saved.length}`;
    try {
      await port.write("a/agent.json", `${text}${line}\n`, version);
      saved.push(line);
    } catch (error) {
      if (!(error instanceof ports.DocumentConflict)) throw error;
    }
  }
  await close();
  process.send?.(saved);
  process.disconnect();
});
process.send?.("ready");
