import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { workflowFolder } from "../../harness/workflow-process.ts";
import { readText, root } from "../../rooms/repository.ts";
import { blocksOf } from "./pages.ts";

const run = promisify(execFile);

it("README's workflow is right, and its commands trigger it and find its run", async () => {
  const blocks = blocksOf({ file: "README.md", text: await readText("README.md") });
  const definition = blocks.find(({ language, text }) => language === "yaml" && text.includes("nodes:"))!.text;
  const commands = blocks.find(({ language, text }) => language === "sh" && text.includes("workflow check"))!.text;
  using folder = workflowFolder();
  folder.deploy("greet.yaml", definition);
  await using service = await folder.start("local");
  const placed = commands.replace(/http:\/\/127\.0\.0\.1:\d+/, service.url("workflow"));
  expect(placed).not.toBe(commands);
  const script = `set -e; npx() { shift; "${process.execPath}" "${join(root, "presets/portico.mjs")}" "$@"; }\n${placed}`;
  const { stdout } = await run("bash", ["-c", script], { cwd: folder.path });
  const { runId } = JSON.parse(/\{.*?\}/.exec(stdout)![0]) as { runId: string };
  expect(stdout).toContain(`{"runs":[{"runId":"${runId}"`);
  expect(await service.until("greet", runId, "completed")).toMatchObject({
    finalOutputs: { greeting: "You said: Say hello to Ada (This is the offline demo model.)" },
  });
}, 60_000);
