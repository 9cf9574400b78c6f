import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "../../harness/portico-process.ts";
import { workflowFolder, type WorkflowProcess } from "../../harness/workflow-process.ts";

const BYTES = "Words of ada in a file";
const folder = workflowFolder();
let server: Server;
let service: WorkflowProcess;
let runs: { readonly ada: any; readonly resumed: any; readonly other: any };

const portico = (...args: string[]) => runCommand(args, { cwd: folder.path });
const doctor = async (): Promise<string[]> => {
  const { stdout } = await portico("doctor", "--deep", "--json");
  return JSON.parse(stdout)
    .filter(({ about }: { about: string }) => about === "files")
    .map(({ message }: { message: string }) => message);
};

beforeAll(async () => {
  let fails = true;
  server = createServer((request, response) => {
    if (request.url === "/fails" && fails) return response.writeHead(400).end();
    return response.writeHead(200, { "content-type": "text/plain" }).end(BYTES);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const get = { type: "http", with: { url: `${url}/file.txt`, response: "file" } };
  folder.deploy("w.json", { nodes: { get, next: { type: "http", needs: ["get"], with: { url: `${url}/fails` } } } });
  service = await folder.start("local", { config: { workflow: { http: { allow: ["127.0.0.1"] } } } });
  const start = async (user?: string) => {
    const issued = await portico("grant", "issue", "--workflow", "w", ...(user === undefined ? [] : ["--user", user]));
    const body = { executionGrantId: issued.stdout.trim(), idempotencyKey: "k", workflowId: "w" };
    return (await service.call("POST", "/api/workflow/run", body)).body.runId as string;
  };
  const ada = await service.until("w", await start("ada"), "failed");
  fails = false;
  const headers = { "x-execution-grant": (await portico("grant", "issue", "--workflow", "w", "--user", "ada")).stdout.trim() };
  const { body } = await service.call("POST", `/api/workflow/w/runs/${ada.runId}/resume`, { idempotencyKey: "k" }, headers);
  const resumed = await service.until("w", body.runId, "completed");
  runs = { ada, resumed, other: await service.until("w", await start(), "completed") };
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  server.close();
  folder[Symbol.dispose]();
});

describe("files of runs", () => {
  it("are compared with their records by `portico doctor --deep`, and copied by `portico backup` and `portico restore`", async () => {
    expect(await doctor()).toEqual(["compared with their records: 2"]);
    const archive = join(folder.path, "backup.tar");
    expect((await portico("backup", archive)).code).toBe(0);
    const restored = join(folder.path, "restored");
    expect((await portico("restore", archive, "--data-dir", restored, "--keep-documents")).code).toBe(0);
    for (const { files } of [runs.ada, runs.other])
      expect(readFileSync(join(restored, "files/workflow-files", files[0].file), "utf8")).toBe(BYTES);
  });

  it("are exported with their user's runs, each once, although two runs have it", async () => {
    const dir = join(folder.path, "ada");
    const { stdout } = await portico("user", "export", "ada", dir, "--json");
    expect(JSON.parse(stdout).counts).toMatchObject({ "workflow-runs": 2, "workflow-files": 2 });
    const [file] = runs.ada.files;
    const listed = readFileSync(join(dir, "workflow-files.jsonl"), "utf8").trim().split("\n");
    const sha256 = createHash("sha256").update(BYTES).digest("hex");
    expect(listed.map((line) => JSON.parse(line))).toEqual(
      [runs.ada.runId, runs.resumed.runId].map((runId) => ({ ...file, runId, name: "file.txt", size: BYTES.length, sha256 })),
    );
    expect(readFileSync(join(dir, "workflow-files", file.file), "utf8")).toBe(BYTES);
  });

  it("are erased with their user's runs, and those of others stay", async () => {
    const { code, stdout } = await portico("user", "erase", "ada", "--yes", "--json");
    expect([code, JSON.parse(stdout).workflowRuns]).toEqual([0, 2]);
    const pathOf = ({ files }: any) => join(service.dataDir, "files/workflow-files", files[0].file);
    expect([existsSync(pathOf(runs.ada)), existsSync(pathOf(runs.other))]).toEqual([false, true]);
    expect(await doctor()).toEqual(["compared with their records: 1"]);
    rmSync(pathOf(runs.other));
    expect(await doctor()).toEqual(["records without a file: 1"]);
  });
});
