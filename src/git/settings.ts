/**
 * Command-line options that override whatever a repository's settings could start or change. Filters and merge drivers
 * cannot be switched off, because Git LFS needs them; they run in the sandbox like git itself.
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
  "rerere.enabled=false",
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
 * No prompts, no user or system settings, no fetching, no side effects of reading, and errors in English, so that they can
 * be parsed.
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
