import { describe, expect, it } from "vitest";
import { readLimits } from "../../../adapters/src/realtime/socket-io/limits.ts";
import { readText } from "../../rooms/repository.ts";

describe("docs/ports/realtime.md", () => {
  it("says the limits that the code has", async () => {
    const limits = readLimits({});
    const page = await readText("docs/ports/realtime.md");
    for (const row of [
      `| \`maxMessageBytes\` | ${limits.maxMessageBytes / 1024} KiB |`,
      `| \`helloTimeoutMs\` | ${limits.helloTimeoutMs / 1000} s |`,
      `| \`pingIntervalMs\`, \`pingTimeoutMs\` | ${limits.pingIntervalMs / 1000} s, ${limits.pingTimeoutMs / 1000} s |`,
      `| ${limits.backlog.events.toLocaleString("en")}, ${limits.backlog.bytes / 1024 / 1024} MiB |`,
    ]) {
      expect(page.replaceAll(/ +/g, " ")).toContain(row);
    }
  });
});
