import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type PorticoProcess, type StartOptions, startPortico, temporaryFolder } from "./portico-process.ts";

/** A folder with definitions, in which services are started and commands are run. */
export interface WorkflowFolder extends Disposable {
  readonly path: string;
  /** Write a definition; answers its path. An object is written as JSON. */
  deploy(name: string, definition: string | object): string;
  start(preset: string, options?: Omit<StartOptions, "cwd" | "args">): Promise<WorkflowProcess>;
}

export interface WorkflowProcess extends Omit<PorticoProcess, "token"> {
  /** By name in `credentials.json`. */
  token(name: string): string;
  /** A call of the workflow service with its token. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<{ status: number; body: any }>;
  /** Trigger a workflow; answers the run's id. */
  trigger(workflowId: string, parameters?: object): Promise<string>;
  /** The detail of a run, once it has this status. */
  until(workflowId: string, runId: string, status: string): Promise<any>;
}

export function workflowFolder(): WorkflowFolder {
  const folder = temporaryFolder();
  return {
    path: folder.path,
    deploy(name, definition) {
      const path = join(folder.path, "workflows", name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, typeof definition === "string" ? definition : JSON.stringify(definition));
      return path;
    },
    async start(preset, options = {}) {
      const service = await startPortico({ ...options, cwd: folder.path, args: [preset] });
      return withCalls(service, options.env?.["WORKFLOW_SERVICE_TOKEN"]);
    },
    [Symbol.dispose]: folder.remove,
  };
}

function withCalls(service: PorticoProcess, given: string | undefined): WorkflowProcess {
  const token = (name: string) => (JSON.parse(service.read("credentials.json")) as Record<string, string>)[name]!;
  const call: WorkflowProcess["call"] = async (method, path, body, headers = {}) => {
    const answer = await fetch(service.url("workflow") + path, {
      method,
      headers: {
        "x-workflow-service-token": given ?? token("workflowServiceToken"),
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text.startsWith("{") ? JSON.parse(text) : text };
  };
  return Object.assign(service, {
    token,
    call,
    async trigger(workflowId: string, parameters: object = {}) {
      const { status, body } = await call("POST", `/api/workflow/webhook?id=${workflowId}`, parameters);
      if (status !== 200) throw new Error(`The trigger was answered with ${status}: ${JSON.stringify(body)}`);
      return body.runId as string;
    },
    async until(workflowId: string, runId: string, wanted: string) {
      for (let left = 600; ; left--) {
        const { body } = await call("GET", `/api/workflow/${workflowId}/runs/${runId}`);
        if (body.status === wanted) return body;
        if (left === 0) throw new Error(`The run is ${body.status}: ${JSON.stringify(body)}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
  }) as unknown as WorkflowProcess;
}
