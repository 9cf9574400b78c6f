import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { agentDocuments } from "@portico/operator/agent-documents";
import { expect, it } from "vitest";
import { startAgentService } from "../../harness/agent-app.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

const MARK = String.fromCodePoint(0xfeff);
const path = "/api/agents/helper/document";

it("an agent.json that begins with a byte order mark is read, checked, and written as without it", async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, "helper/agent.json");
  mkdirSync(join(folder.path, "helper"));
  writeFileSync(file, `${MARK}{ "name": "Marked" }`);
  await using service = await startAgentService({ agentsDir: folder.path, plugins: [agentDocuments({})] });
  const listed = async () => (await service.call("owner", "GET", "/api/agents")).body.agents[0];
  expect(await listed()).toMatchObject({ id: "helper", name: "Marked" });
  expect(await listed()).not.toHaveProperty("metadataError");

  const text = `${MARK}{\n  "name": "Again",\n  "temperature": 9\n}`;
  const { body } = await service.call("owner", "POST", `${path}/check`, { text });
  expect(body.problems).toMatchObject([{ severity: "error", line: 3, column: 3, path: "$.temperature" }]);

  const headers = { "x-agent-service-token": "owner-token-0123456789" };
  const etag = (await fetch(service.url + path, { headers })).headers.get("etag")!;
  const saved = await service.call("owner", "PUT", path, { text: `${MARK}{ "name": "Again" }` }, { "if-match": etag });
  expect(saved.status).toBeLessThan(300);
  expect(readFileSync(file, "utf8")).toContain('{ "name": "Again" }');
  await expect.poll(async () => (await listed()).name).toBe("Again");
  folder.remove();
});
