import { ensureAll, ensureNodeManagers, ensureUv } from "./program.ts";

/**
 * Programs and files with their packages. The slow tests would otherwise install them one by one, each within a single test's
 * timeout.
 */
const NEEDED = {
  bwrap: ["bubblewrap"],
  tmux: ["tmux"],
  chromium: ["chromium"],
  "systemd-analyze": ["systemd"],
  fish: ["fish"],
  zsh: ["zsh"],
  go: ["golang-go"],
  "/usr/bin/cargo": ["cargo"],
  cmake: ["cmake"],
  make: ["make"],
  "g++": ["g++"],
  javac: ["default-jdk-headless"],
  mvn: ["maven"],
  gradle: ["gradle"],
  "/usr/share/maven-repo/org/apache/maven/plugins/maven-surefire-plugin": [
    ...["libmaven-compiler-plugin-java", "libmaven-resources-plugin-java", "libsurefire-java", "junit4"],
  ],
  php: ["php-cli"],
  phpunit: ["phpunit"],
  "git-lfs": ["git-lfs"],
  "/usr/sbin/nats-server": ["nats-server"],
  "/usr/bin/python3": ["python3"],
  "/usr/share/doc/python3-venv": ["python3-venv"],
  "/usr/share/doc/python3-setuptools": ["python3-setuptools"],
};

await ensureAll(NEEDED);
await ensureUv();
await ensureNodeManagers();
