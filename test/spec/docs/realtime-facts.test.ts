import { describe, expect, it } from "vitest";
import { readLimits } from "../../../adapters/src/realtime/socket-limits.ts";
import { CLOSING } from "../../../adapters/src/realtime/websocket/frames.ts";
import { readText } from "../../rooms/repository.ts";

describe("docs/websocket-protocol.md", () => {
  it("says the closings, frames and limits that the code has", async () => {
    const page = (await readText("docs/websocket-protocol.md")).replaceAll(/ +/g, " ");
    for (const { code, reason } of Object.values(CLOSING)) {
      // A WebSocket server closes for size by itself, and gives no reason.
      expect(page).toContain(code === CLOSING.tooLarge.code ? `| ${code} | |` : `| ${code} | \`${reason}\` |`);
    }
    const limits = readLimits({});
    expect(page).toContain(`"pingIntervalMs":${limits.pingIntervalMs},"pingTimeoutMs":${limits.pingTimeoutMs}}`);
    expect(page).toContain(`A frame has at most ${limits.maxMessageBytes / 1024} KiB`);
    expect(page).toContain(`within ${limits.helloTimeoutMs / 1000} s`);
    expect(page).toContain(
      `more than ${limits.backlog.events.toLocaleString("en")} events or ${limits.backlog.bytes / 1024 / 1024} MiB wait`,
    );
  });
});

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
