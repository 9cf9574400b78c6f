import { fileSecrets } from "@portico/adapters/secrets/files";
import { openAdapter } from "../open-adapter.ts";

// A process of its own: told `go`, it keeps one common secret and one of its own, and prints what it got.
const [path = "", own = ""] = process.argv.slice(2);
const { port: secrets } = await openAdapter(fileSecrets({ path }));
process.once("message", async () => {
  const common = await secrets.keep("common", () => secrets.create("agent_"));
  const mine = await secrets.keep(own, () => secrets.create("workflow_"));
  process.send?.({ common: common.value.reveal(), created: common.created, mine: mine.value.reveal() });
  process.disconnect();
});
process.send?.("ready");
