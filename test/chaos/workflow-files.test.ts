import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, it } from "vitest";
import { runCommand } from "../harness/portico-process.ts";
import { workflowFolder } from "../harness/workflow-process.ts";

const KILLS = process.env.PORTICO_LONG ? 30 : 2;
/** Runs of each life. */
const RUNS = 8;
const folder = workflowFolder();
const digestOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
afterAll(() => folder[Symbol.dispose]());

it(
  `${KILLS} kills while runs save and send files: each run ends with its two files, whole, and no file is left that no run has`,
  async () => {
    const served = new Set<string>();
    const received: string[] = [];
    const server = createServer((request, response) => {
      if (request.method === "POST") {
        const hash = createHash("sha256");
        request.on("data", (chunk: Buffer) => hash.update(chunk));
        request.on("end", () => {
          received.push(hash.digest("hex"));
          response.end();
        });
        return;
      }
      const bytes = randomBytes(10_000 + Math.floor(Math.random() * 500_000));
      served.add(digestOf(bytes));
      // In two pieces, so that a kill often comes between them.
      response.writeHead(200, { "content-type": "application/octet-stream" });
      response.write(bytes.subarray(0, 5000));
      setTimeout(() => response.end(bytes.subarray(5000)), Math.random() * 100);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const get = { type: "http", with: { url: `${url}/file`, response: "file" }, retry: { attempts: 5, delay: "10ms" } };
    const send = (from: string) => ({
      type: "http",
      needs: [from],
      with: { url, method: "POST", key: "node", file: `\${{ nodes.${from}.output.file }}` },
      retry: { attempts: 5, delay: "10ms" },
    });
    folder.deploy("w.json", {
      nodes: { one: get, sent: send("one"), two: { ...get, needs: ["sent"] }, done: send("two") },
    });
    const config = { workflow: { http: { allow: ["127.0.0.1"] } } };
    const accepted: string[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      await using service = await folder.start("local", { config, hasOwnProcess: true });
      for (let run = 0; run < RUNS; run++) accepted.push(await service.trigger("w"));
      await sleep(Math.random() * 400);
      service.signal("SIGKILL");
      await service.exited;
    }
    {
      await using service = await folder.start("local", { config, hasOwnProcess: true });
      const files: { file: string; sha256: string }[] = [];
      for (const runId of accepted) {
        const detail = await service.until("w", runId, "completed");
        expect(detail.files).toHaveLength(2);
        const named = ["one", "two"].map((node) => detail.nodeResults[node].outputs.file.file).toSorted();
        expect(detail.files.map(({ file }: { file: string }) => file).toSorted()).toEqual(named);
        files.push(...detail.files);
      }
      const dir = join(service.dataDir, "files/workflow-files");
      for (const { file, sha256 } of files) {
        expect(digestOf(readFileSync(join(dir, file)))).toBe(sha256);
        expect(served).toContain(sha256);
        expect(received).toContain(sha256);
      }
      // An interrupted upload has a note instead of a record: the doctor knows it, and a sweep removes it a day later.
      const blobs = readdirSync(dir).filter((name) => name.startsWith("wfile_"));
      expect(blobs).toEqual(expect.arrayContaining(files.map(({ file }) => file)));
      const { stdout } = await runCommand(["doctor", "--deep", "--json"], { cwd: folder.path });
      const found = JSON.parse(stdout) as { about: string; message: string }[];
      expect(found.filter(({ about }) => about === "files").map(({ message }) => message)).toEqual([
        `compared with their records: ${files.length}`,
      ]);
    }
    server.closeAllConnections();
    server.close();
  },
  KILLS * 60_000 + 120_000,
);
