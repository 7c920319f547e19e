/**
 * What a repository's own settings could start or change is told off on the command line, which counts for more than they do.
 * Filters and merge drivers cannot be: who uses Git LFS needs them. They run behind the wall like git itself.
 */
export const FIXED_SETTINGS = [
  "core.fsmonitor=false",
  "core.hooksPath=/dev/null",
  "core.pager=cat",
  "core.editor=true",
  "core.askPass=",
  "core.sshCommand=ssh",
  "core.gitProxy=none",
  "core.alternateRefsCommand=true",
  "core.attributesFile=/dev/null",
  "credential.helper=",
  "diff.external=",
  "sequence.editor=true",
  "gpg.program=false",
  "gpg.ssh.program=false",
  "gpg.ssh.defaultKeyCommand=false",
  "gpg.x509.program=false",
  "commit.gpgSign=false",
  "tag.gpgSign=false",
  "log.showSignature=false",
  "merge.verifySignatures=false",
  "submodule.recurse=false",
  "fetch.recurseSubmodules=false",
  "safe.bareRepository=explicit",
  "init.defaultBranch=main",
  "init.templateDir=",
  "gc.auto=0",
  "maintenance.auto=false",
  "advice.detachedHead=false",
  "advice.addEmbeddedRepo=false",
] as const;

/**
 * Nobody is asked anything, the settings of the user and the system are not read, nothing is fetched, looking changes nothing,
 * and what went wrong is read from git's own words.
 */
export const FIXED_ENVIRONMENT = {
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_SYSTEM: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_TERMINAL_PROMPT: "0",
  GIT_ASKPASS: "",
  SSH_ASKPASS: "",
  GIT_EDITOR: "true",
  GIT_SEQUENCE_EDITOR: "true",
  GIT_PAGER: "cat",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_ALLOW_PROTOCOL: "",
  GIT_NO_LAZY_FETCH: "1",
  LC_ALL: "C",
};
