import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startListening } from "./listening-program.ts";
import { hasOpenssl, makeCertificate } from "./own-certificate.ts";
import { temporaryFolder } from "./portico-process.ts";
import { freePort } from "./ports.ts";

/** An nginx in a process and a folder of its own. */
export interface Nginx extends AsyncDisposable {
  readonly port: number;
  /** Of the certificate that it shows, to be trusted by who calls it: PEM. */
  readonly certificate: string;
  /** The file of its error log. */
  readonly errorLog: string;
}

/** The program of nginx to use. Default: the one of this machine. */
const PROGRAM = process.env["PORTICO_TEST_NGINX"] ?? "nginx";

/** Whether nginx follows names of upstreams whose addresses change (`resolve`): from version 1.27.3. */
export function followsNames(): boolean {
  const found = /nginx\/(\d+)\.(\d+)\.(\d+)/.exec(spawnSync(PROGRAM, ["-v"], { encoding: "utf8" }).stderr ?? "");
  const [major = 0, minor = 0, patch = 0] = (found ?? []).slice(1).map(Number);
  return major > 1 || (major === 1 && (minor > 27 || (minor === 27 && patch >= 3)));
}

/** Whether there are nginx and openssl on this machine; with `CI` set, their absence is an error. */
export function hasNginx(): boolean {
  const isThere = spawnSync(PROGRAM, ["-version"]).error === undefined;
  if (!isThere && process.env["CI"]) throw new Error("CI has to have nginx");
  return isThere && hasOpenssl();
}

/**
 * Starts nginx with the given contents of its `http` block. `listen 443` becomes a free port of this machine, and every certificate a new
 * one for the names of the servers.
 */
export async function startNginx(http: string): Promise<Nginx> {
  const folder = temporaryFolder();
  const port = await freePort();
  const names = [...http.matchAll(/server_name (\S+);/g)].map(([, name]) => `DNS:${name}`);
  const made = makeCertificate(folder.path, names);
  const placed = http
    .replaceAll("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
    .replaceAll(/ssl_certificate( +)\S+;/g, `ssl_certificate$1${made.certificateFile};`)
    .replaceAll(/ssl_certificate_key( +)\S+;/g, `ssl_certificate_key$1${made.keyFile};`);
  const kept = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((what) => `${what}_temp_path ${folder.path}/${what};`);
  mkdirSync(join(folder.path, "logs"));
  writeFileSync(
    join(folder.path, "nginx.conf"),
    `${process.getuid?.() === 0 ? "user root;" : ""} daemon off; pid ${folder.path}/pid; error_log ${folder.path}/logs/error.log;
     events { worker_connections 512; }
     http { access_log off; ${kept.join(" ")}\n${placed}\n}`,
  );
  const args = ["-p", folder.path, "-c", join(folder.path, "nginx.conf"), "-e", join(folder.path, "logs/error.log")];
  const running = await startListening({ command: PROGRAM, args, port, cwd: folder.path });
  return {
    port,
    certificate: made.certificate,
    errorLog: join(folder.path, "logs/error.log"),
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      folder.remove();
    },
  };
}
