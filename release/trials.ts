import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import type { EmptyProject } from "./empty-project.ts";
import { startService } from "./start-service.ts";

/** One check of a project with the packed packages. Returns a report. Throws if it fails. */
export interface Trial {
  readonly name: string;
  run(project: EmptyProject): Promise<string>;
}

/** `specifiers` are all import specifiers of the packages. */
export function trialsOf(specifiers: readonly string[]): readonly Trial[] {
  return [
    {
      name: "every exported module is imported",
      async run(project) {
        const text = specifiers.map((specifier) => `await import(${JSON.stringify(specifier)});\n`).join("");
        // Conformance suites run only in vitest.
        await writeFile(
          join(project.folder, "modules.test.ts"),
          `import { it } from "vitest";\n${text}it("is there", () => {});\n`,
        );
        await project.run("npx", "vitest", "run", "modules");
        return `${specifiers.length} modules`;
      },
    },
    { name: "npx portico start --json", run: tryService },
    {
      name: "a plugin on the core alone",
      async run(project) {
        expect((await project.run("node", "greeting.ts")).trim(), '{"greeting":"Hello, Ada!"}');
        return "node greeting.ts";
      },
    },
    { name: "an app inside a server of one's own", run: tryEmbedding },
    {
      name: "a conformance suite for an adapter of one's own",
      async run(project) {
        await project.run("npx", "vitest", "run", "counted-ids");
        return "npx vitest";
      },
    },
    { name: "what portico new makes", run: tryScaffolds },
    {
      name: "types, those of the packages included",
      run: tryTypes,
    },
  ];
}

/** Uses the service as a user does: starts it, calls it as a program, watches it as a page, and stops it as a supervisor. */
async function tryService(project: EmptyProject): Promise<string> {
  const agent = join(project.folder, "agents/helper");
  await mkdir(agent, { recursive: true });
  await writeFile(join(agent, "agent.json"), JSON.stringify({ name: "Helper", instructions: "Answer briefly." }));

  await using service = await startService(["npx", "portico", "start", "--json"], project.folder);
  const token = (await project.run("npx", "portico", "token", "issue", "--provider", "demo")).trim();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  // One is converted on the event loop, and one in a worker thread.
  for (const content of ["Hello", "Hello ".repeat(200_000)]) {
    const body = JSON.stringify({ model: "demo", max_tokens: 10, messages: [{ role: "user", content }] });
    for (const path of ["chat/completions", "messages"])
      expect((await fetch(`${service.urls["proxy"]}/${path}`, { method: "POST", headers, body })).status, 200);
  }
  for (const surface of ["workflow", "agent"]) expect((await fetch(`${service.urls[surface]}/healthz`)).status, 200);

  const { agentServiceToken, workflowServiceToken } = JSON.parse(
    await readFile(join(project.folder, ".portico/credentials.json"), "utf8"),
  ) as { agentServiceToken: string; workflowServiceToken: string };
  expect(await runWorkflow(service.urls["workflow"]!, workflowServiceToken), 6);

  const page = await bundlePage(project);
  const { ask } = (await import(pathToFileURL(page.path).href)) as { ask: (...words: string[]) => Promise<string> };
  const said = await ask(service.urls["agent"]!, agentServiceToken, "from a page");
  if (said === "") throw new Error("The agent said nothing");

  expect(await service.stop(), 0);
  return `answers, and stops; a page's bundle with the client has ${Math.round(page.bytes / 1024)} KiB`;
}

/** Returns the result of the workflow `threads`: its nodes run in their own threads. */
async function runWorkflow(url: string, token: string): Promise<unknown> {
  const headers = { "x-workflow-service-token": token };
  const call = async (path: string, method = "GET") => {
    const answer = await fetch(`${url}/api/workflow/${path}`, { method, headers });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as { runId: string; status: string; finalOutputs?: { doubled: unknown } };
  };
  const { runId } = await call("webhook?id=threads", "POST");
  for (;;) {
    const run = await call(`threads/runs/${runId}`);
    if (run.status === "completed") return run.finalOutputs?.doubled;
    if (run.status !== "running") throw new Error(JSON.stringify(run));
    await sleep(100);
  }
}

/** Bundles the client for a page. Throws if the bundle contains code of Node.js. */
async function bundlePage({ folder }: EmptyProject): Promise<{ readonly path: string; readonly bytes: number }> {
  const bundle = await rolldown({ input: join(folder, "page.ts"), cwd: folder, platform: "browser", logLevel: "silent" });
  const path = join(folder, "bundle/page.js");
  const { output } = await bundle.write({ file: path, format: "esm", minify: true });
  await bundle.close();
  const { code, imports } = output[0];
  if (imports.length > 0 || /["']node:/.test(code))
    throw new Error(`The bundle is not for browsers: it imports ${imports.join(", ")}`);
  return { path, bytes: Buffer.byteLength(code) };
}

async function tryEmbedding({ folder }: EmptyProject): Promise<string> {
  const child = spawn("node", ["embed.ts"], {
    cwd: folder,
    env: { ...process.env, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [said] = (await Promise.race([once(child.stdout, "data"), once(child, "close")])) as [Buffer | number];
    const port = /port: (\d+)/.exec(String(said))?.[1];
    const answer = await fetch(`http://127.0.0.1:${port}/v1/models`);
    // Calls without a safe token are refused: the refusal shows that the proxy answers.
    expect(answer.status, 401);
    return "node embed.ts";
  } finally {
    child.kill();
  }
}

/** Scaffolded packages are placed in the project, as if they had installed its packages. */
async function tryScaffolds(project: EmptyProject): Promise<string> {
  const made = [
    ["plugin", "tea-house"],
    ["adapter", "tea-tools", "--port", "tools"],
    ["preset", "tea-stack"],
  ];
  for (const [kind = "", name = "", ...more] of made) {
    await project.run("npx", "portico", "new", kind, name, ...more);
    await project.run("npm", "run", "--prefix", name, "check");
    await project.run("npm", "run", "--prefix", name, "test");
  }
  return made.map(([kind]) => kind).join(", ");
}

/**
 * Also checks the declarations themselves, not only their use. Declarations of other packages are excluded, because they cannot
 * be fixed here.
 */
async function tryTypes(project: EmptyProject): Promise<string> {
  try {
    await project.run("npx", "tsc", "--pretty", "false");
  } catch (error) {
    const faults = (error as Error).message.split("\n").filter((line) => /: error TS\d/.test(line));
    const ours = faults.filter((line) => !/^node_modules\/(?!@?portico\/)/.test(line));
    if (ours.length > 0 || faults.length === 0) throw error;
  }
  return "npx tsc";
}

function expect(given: unknown, wanted: unknown): void {
  if (given !== wanted) throw new Error(`Expected ${String(wanted)}, and got ${String(given)}`);
}
