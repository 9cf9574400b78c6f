import { beforeAll, describe, expect, it } from "vitest";
import semver from "semver";
import { parse } from "yaml";
import { PUBLISHED_ROOMS } from "../../release/workspaces.ts";
import { readText, repositoryFiles } from "./repository.ts";

interface LockedPackage {
  readonly version?: string;
  readonly link?: boolean;
  /** It lies in the tarball of the package around it, whose hash covers it. */
  readonly inBundle?: boolean;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly engines?: { readonly node?: string };
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

let packages: Readonly<Record<string, LockedPackage>>;
const isExternal = (path: string) => path.includes("node_modules/") && !packages[path]!.link;

beforeAll(async () => {
  ({ packages } = JSON.parse(await readText("package-lock.json")) as { packages: typeof packages });
});

describe("every lockfile", () => {
  let lockfiles: readonly string[];
  beforeAll(async () => {
    lockfiles = (await repositoryFiles()).filter((file) => /(?:^|\/)package-lock\.json$/.test(file));
  });
  const lockedBy = async (file: string) => (JSON.parse(await readText(file)) as { packages: typeof packages }).packages;

  it("says of every package from outside what its bytes hash to", async () => {
    expect(lockfiles).toEqual(expect.arrayContaining(["package-lock.json", "release/package-lock.json"]));
    for (const file of lockfiles) {
      const locked = await lockedBy(file);
      const isOthers = (path: string) => path.includes("node_modules/") && !locked[path]!.link;
      const external = Object.keys(locked).filter(isOthers);
      expect(external).not.toEqual([]);
      const isBundled = (path: string) => locked[path]!.inBundle && isOthers(path.slice(0, path.lastIndexOf("/node_modules/")));
      const unproven = external.filter(
        (path) => !isBundled(path) && !/^sha512-[A-Za-z0-9+/]{86}==$/.test(locked[path]!.integrity ?? ""),
      );
      // Where npm lost some: CONTRIBUTING.md, "Dependencies".
      expect([file, unproven]).toEqual([file, []]);
    }
  });

  it("puts no package into the node_modules of a workspace within a workspace, where `npm ci` does not install it", () => {
    expect(Object.keys(packages).filter((path) => /^(?!node_modules\/)[^/]+\/[^/]+\/node_modules\//.test(path))).toEqual([]);
  });

  it("names no host of a registry", async () => {
    for (const file of lockfiles)
      expect([file, (await readText(file)).match(/"resolved": "[a-z+]+:[^"]*"/g)]).toEqual([file, null]);
  });

  it("stands beside a package.json that agrees with it", async () => {
    for (const file of lockfiles) {
      const manifest = JSON.parse(await readText(file.replace("package-lock.json", "package.json"))) as LockedPackage;
      const { devDependencies = {} } = (await lockedBy(file))[""] as LockedPackage;
      expect([file, devDependencies]).toEqual([file, manifest.devDependencies ?? {}]);
    }
  });
});

describe("engines", () => {
  /** Where Node.js finds a package from another: in its own folder, or in one further up. */
  const findFrom = (from: string, name: string): string | undefined => {
    for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf("/node_modules/")))) {
      const path = `${at === "" ? "" : `${at}/`}node_modules/${name}`;
      const found = packages[path];
      if (found) return found.link ? found.resolved : path;
      if (at === "") return undefined;
      if (!at.includes("/node_modules/")) at = "";
    }
  };
  const everythingBelow = (root: string): ReadonlySet<string> => {
    const seen = new Set<string>();
    const visit = (path: string) => {
      if (seen.has(path)) return;
      seen.add(path);
      const { dependencies, optionalDependencies, peerDependencies } = packages[path]!;
      for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
        const found = findFrom(path, name);
        if (found !== undefined) visit(found);
      }
    };
    visit(root);
    return seen;
  };

  it.each(PUBLISHED_ROOMS)("of %s ask for no older Node.js than what it depends on", async (room) => {
    const { engines } = JSON.parse(await readText(`${room}/package.json`)) as { engines: { node: string } };
    const least = semver.minVersion(engines.node)!.version;
    const below = [...everythingBelow(room)].filter(isExternal);
    expect(below).not.toEqual([]);
    const tooNew = below.filter((path) => !semver.satisfies(least, packages[path]!.engines?.node ?? "*"));
    expect(tooNew).toEqual([]);
  });

  it("are what the check of Node.js, and the packages that portico new writes, ask for", async () => {
    const { engines } = JSON.parse(await readText("presets/cli/package.json")) as { engines: { node: string } };
    const checked = /needed = \[(\d+), (\d+)\]/.exec(await readText("core/needed-node.cjs"))!;
    expect(`>=${checked[1]}.${checked[2]}`).toBe(engines.node);
    const templates = (await repositoryFiles()).filter((file) => /^presets\/cli\/templates\/[\w-]+\/package\.json$/.test(file));
    expect(templates).not.toEqual([]);
    for (const template of templates)
      expect([template, (JSON.parse(await readText(template)) as LockedPackage).engines]).toEqual([template, engines]);
  });
});

interface Job {
  readonly uses?: string;
  readonly needs?: string;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps?: readonly {
    readonly uses?: string;
    readonly run?: string;
    readonly with?: Readonly<Record<string, unknown>>;
  }[];
}

describe("the workflows of GitHub", () => {
  let texts: ReadonlyMap<string, string>;
  const jobsOf = (file: string) => (parse(texts.get(file)!) as { jobs: Record<string, Job> }).jobs;
  const allJobs = () =>
    [...texts.keys()].flatMap((file) => Object.entries(jobsOf(file)).map(([name, job]) => ({ at: `${file}: ${name}`, job })));
  const RELEASE = ".github/workflows/release.yml";

  beforeAll(async () => {
    const files = (await repositoryFiles()).filter((file) => file.startsWith(".github/workflows/"));
    texts = new Map(await Promise.all(files.map(async (file) => [file, await readText(file)] as const)));
  });

  it("name each action of others by a commit, with its version beside it", () => {
    const named = [...texts.values()]
      .flatMap((text) => text.match(/^\s*(?:- )?uses: .*$/gm) ?? [])
      .map((line) => line.trim().replace(/^- /, ""));
    expect(named).not.toEqual([]);
    expect(named.filter((line) => !/^uses: (?:\.\/|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$)/.test(line))).toEqual([]);
  });

  it("give rights to single jobs, and leave no credential in the checkout", () => {
    for (const text of texts.values()) expect((parse(text) as Job).permissions).toEqual({});
    for (const { at, job } of allJobs()) {
      expect([at, job.permissions]).toEqual([at, expect.any(Object)]);
      for (const step of job.steps ?? [])
        if (step.uses?.startsWith("actions/checkout@"))
          expect([at, step.with]).toMatchObject([at, { "persist-credentials": false }]);
    }
  });

  it("release after CI alone, and run no script of a package where something can be written or published", () => {
    const jobs = jobsOf(RELEASE);
    expect(jobs["ci"]?.uses).toBe("./.github/workflows/ci.yml");
    const comesAfterCi = (name: string): boolean =>
      name === "ci" || (jobs[name]?.needs !== undefined && comesAfterCi(jobs[name].needs));
    expect(Object.keys(jobs).filter((name) => !comesAfterCi(name))).toEqual([]);

    const mighty = allJobs().filter(({ job }) => Object.values(job.permissions ?? {}).includes("write"));
    expect(mighty.map(({ at }) => at)).toEqual([`${RELEASE}: version`, `${RELEASE}: publish`]);
    for (const { job } of mighty) expect(job.steps?.flatMap(({ run }) => run ?? [])).toEqual(["npm ci --ignore-scripts"]);
  });
});
