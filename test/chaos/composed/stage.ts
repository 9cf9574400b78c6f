import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CLUSTER_WORKFLOW } from "../../harness/cluster.ts";
import { startNginx } from "../../harness/nginx.ts";
import { type PorticoProcess, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { freePort } from "../../harness/ports.ts";
import { shippedNginx } from "../../harness/shipped-nginx.ts";
import { startEffects } from "../cluster/effects.ts";
import { startModel } from "../cluster/model.ts";
import { documentsOf, type Scene, settingsOf } from "../cluster/stage.ts";
import { openPlainDoor } from "./plain-door.ts";

/** The preset `local` behind nginx, combined as in `deploy/container/compose.yaml`, and the external systems that it uses. */
export interface ComposedStage extends Scene, AsyncDisposable {
  /** Kill the service, and start it again as the container's restart policy does. Resolves when it is ready. */
  killService(): Promise<void>;
  /** What all processes of the service have logged. */
  log(): string;
}

/** nginx has one certificate for both names. Requests choose the server by `Host`. */
const NAMES = { agent: "localhost", workflow: "127.0.0.1" };

export async function startComposedStage(): Promise<ComposedStage> {
  const stack = new AsyncDisposableStack();
  try {
    const effects = stack.use(await startEffects());
    const model = stack.use(await startModel(effects));
    const folder = temporaryFolder();
    stack.defer(folder.remove);
    for (const [name, content] of Object.entries(documentsOf(effects))) {
      const path = join(folder.path, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, JSON.stringify(content));
    }
    const ports = { agent: await freePort(), workflow: await freePort(), proxy: await freePort() };
    const env = {
      ...settingsOf(effects, model.baseUrl),
      ...Object.fromEntries(Object.entries(ports).map(([surface, port]) => [`PORTICO_${surface.toUpperCase()}_PORT`, `${port}`])),
      WORKFLOW_SERVICE_TOKEN: CLUSTER_WORKFLOW,
      PORTICO_MEDIA_ACCEL_PREFIX: "/media-files",
    };
    const ended: string[] = [];
    const start = () => startPortico({ cwd: folder.path, args: ["local"], env, hasOwnProcess: true });
    let service: PorticoProcess = await start();
    stack.defer(() => service[Symbol.asyncDispose]());
    const shipped = { agents: [service.url("agent")], workflows: [service.url("workflow")], names: NAMES };
    const nginx = stack.use(await startNginx(await shippedNginx({ ...shipped, filesDir: join(service.dataDir, "files") })));
    const door = stack.use(await openPlainDoor(nginx, NAMES.agent));
    const proxy = service.url("proxy");
    const urls = {
      agent: `http://${NAMES.agent}:${door.port}`,
      workflow: `http://${NAMES.workflow}:${door.port}`,
      // Only programs on the same machine use it.
      proxy,
    };
    const kept = stack.move();
    return {
      effects,
      cluster: { url: (surface) => urls[surface] },
      async killService() {
        service.signal("SIGKILL");
        await service.exited;
        ended.push(service.stderr());
        service = await start();
      },
      log: () => [...ended, service.stderr()].join(""),
      [Symbol.asyncDispose]: () => kept.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}
