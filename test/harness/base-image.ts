import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The programs of the Dockerfile's `RUN` steps, and the libraries of Node.js. The packages that these need are added, too. */
const PACKAGES = ["base-files", "coreutils", "dash", "findutils", "libc-bin", "libstdc++6"];
const MERGED = ["bin", "sbin", "lib", "lib64"];

/** A root file system like that of the image `node` of this version: packages of this Debian, this Node.js, npm, and the user `node`. */
export function makeBaseRoot(root: string): void {
  for (const folder of MERGED) {
    mkdirSync(join(root, "usr", folder), { recursive: true });
    symlinkSync(`usr/${folder}`, join(root, folder));
  }
  const files = [...withDependencies(PACKAGES)].flatMap((name) => lines("dpkg-query", "-L", name));
  // Documentation is a third of the bytes.
  const kept = files.filter((file) => !/^\/(?:\.$|usr\/share\/(?:doc|man|locale|info|lintian)\/)/.test(file));
  const archive = execFileSync("tar", ["-C", "/", "-c", "--no-recursion", "--ignore-failed-read", "-T", "-"], {
    input: kept.filter((file) => spawnSync("test", ["-d", file, "-a", "!", "-L", file]).status !== 0).join("\n"),
    maxBuffer: 1024 ** 3,
    stdio: ["pipe", "pipe", "ignore"],
  });
  execFileSync("tar", ["-C", root, "-x", "--keep-directory-symlink"], { input: archive });
  for (const folder of ["dev", "proc", "sys", "run", "root", "home/node", "var/tmp", "tmp", "usr/local/bin"])
    mkdirSync(join(root, folder), { recursive: true });
  for (const folder of ["tmp", "var/tmp"]) chmodSync(join(root, folder), 0o1777);
  writeFileSync(join(root, "etc/passwd"), "root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n");
  writeFileSync(join(root, "etc/group"), "root:x:0:\nnode:x:1000:\n");
  copyFileSync(process.execPath, join(root, "usr/local/bin/node"));
  const [npm = ""] = lines("sh", "-c", 'readlink -f "$(command -v npm)"');
  cpSync(dirname(dirname(npm)), join(root, "usr/local/lib/node_modules/npm"), { recursive: true, dereference: true });
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(root, "usr/local/bin/npm"));
}

function withDependencies(names: readonly string[]): Set<string> {
  const found = new Set<string>();
  const waiting = [...names];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (found.has(name) || spawnSync("dpkg-query", ["-L", name], { stdio: "ignore" }).status !== 0) continue;
    found.add(name);
    const [wanted = ""] = lines("dpkg-query", "-W", "-f", "${Pre-Depends}, ${Depends}\n", name);
    waiting.push(
      ...wanted
        .split(/[,|]/)
        .map((each) => each.trim().split(/[ :(]/)[0]!)
        .filter(Boolean),
    );
  }
  return found;
}

function lines(command: string, ...args: string[]): string[] {
  return execFileSync(command, args, { encoding: "utf8" }).split("\n").filter(Boolean);
}
