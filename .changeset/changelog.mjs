// What CHANGELOG.md says of a release: the changesets as they are written. All packages have one version, so that a package's own list
// need not repeat which versions of the others it takes.

/** @type {import("@changesets/types").ChangelogFunctions} */
export default {
  getReleaseLine: async ({ summary }) => `- ${summary.trim().replaceAll("\n", "\n  ")}`,
  getDependencyReleaseLine: async () => "",
};
