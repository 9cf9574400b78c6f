import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startListening } from "./listening-program.ts";
import { hasOpenssl, makeCertificate, type OwnCertificate } from "./own-certificate.ts";
import { temporaryFolder } from "./portico-process.ts";
import { freePort } from "./ports.ts";

/** A reverse proxy in a process and a folder of its own. */
export interface RunningProxy extends AsyncDisposable {
  readonly port: number;
  /** Of the certificate that it shows, to be trusted by its callers: PEM. */
  readonly certificate: string;
}

interface Place {
  readonly folder: string;
  readonly port: number;
  readonly made: OwnCertificate;
}

/** How a program is run on this machine with the configuration of a page: with a free port, and a certificate that was just made. */
interface Program {
  readonly command: string;
  /** The names of the hosts in a configuration. */
  readonly hosts: RegExp;
  readonly place: (configuration: string, place: Place) => string;
  readonly args: (file: string) => readonly string[];
}

const MODULES = ["mpm_event", "authz_core", "alias", "env", "socache_shmcb", "ssl", "headers", "proxy", "proxy_http"];

const programs = {
  caddy: {
    command: "caddy",
    hosts: /^(\S+\.example) \{$/gm,
    place: (configuration, { port, made }) =>
      `{\n admin off\n auto_https disable_redirects\n skip_install_trust\n https_port ${port}\n default_bind 127.0.0.1\n}\n${configuration.replaceAll(
        /^(\S+\.example) \{$/gm,
        `$1 {\n tls ${made.certificateFile} ${made.keyFile}`,
      )}`,
    args: (file) => ["run", "--adapter", "caddyfile", "--config", file],
  },
  haproxy: {
    command: "haproxy",
    hosts: /hdr\(host\)\S* -i (\S+)$/gm,
    place(configuration, { folder, port, made }) {
      const pem = join(folder, "portico.pem");
      writeFileSync(pem, made.certificate + made.key);
      return configuration.replace(/bind :443 ssl crt \S+/, `bind 127.0.0.1:${port} ssl crt ${pem}`);
    },
    args: (file) => ["-db", "-f", file],
  },
  apache: {
    command: "apache2",
    hosts: /ServerName (\S+)$/gm,
    place(configuration, { folder, port, made }) {
      const placed = configuration
        .replaceAll("<VirtualHost *:443>", `<VirtualHost 127.0.0.1:${port}>`)
        .replaceAll(/SSLCertificateFile .*/g, `SSLCertificateFile ${made.certificateFile}`)
        .replaceAll(/SSLCertificateKeyFile .*/g, `SSLCertificateKeyFile ${made.keyFile}`);
      mkdirSync(join(folder, "pages"));
      return [
        ...MODULES.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
        ...[`ServerRoot ${folder}`, `PidFile ${folder}/pid`, `ErrorLog ${folder}/error.log`, `DefaultRuntimeDir ${folder}`],
        ...[
          `DocumentRoot ${folder}/pages`,
          `Listen 127.0.0.1:${port}`,
          "ServerName localhost",
          "User www-data",
          "Group www-data",
        ],
        placed,
      ].join("\n");
    },
    args: (file) => ["-D", "FOREGROUND", "-f", file],
  },
} satisfies Readonly<Record<string, Program>>;

export type ProxyName = keyof typeof programs;

/** The proxies whose programs this machine has. With `CI` set, the absence of HAProxy is an error. */
export function installedProxies(): readonly ProxyName[] {
  if (!hasOpenssl()) return [];
  const names = (Object.keys(programs) as ProxyName[]).filter(
    (name) => spawnSync(programs[name].command, ["-v"], { stdio: "ignore" }).error === undefined,
  );
  if (process.env["CI"] && !names.includes("haproxy")) throw new Error("CI has to have haproxy");
  return names;
}

/** Start a proxy with the configuration of a page. */
export async function startReverseProxy(name: ProxyName, configuration: string): Promise<RunningProxy> {
  const { command, hosts, place, args }: Program = programs[name];
  const folder = temporaryFolder();
  const port = await freePort();
  const names = [...configuration.matchAll(hosts)].map(([, host]) => `DNS:${host}`);
  const made = makeCertificate(folder.path, names);
  const file = join(folder.path, "configuration");
  writeFileSync(file, `${place(configuration, { folder: folder.path, port, made })}\n`);
  // Caddy writes below the home directory.
  const env = { PATH: process.env["PATH"], HOME: folder.path };
  const running = await startListening({ command, args: args(file), port, cwd: folder.path, env });
  return {
    port,
    certificate: made.certificate,
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      folder.remove();
    },
  };
}
