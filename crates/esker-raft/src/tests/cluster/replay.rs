//! The faults of a schedule, in a simulated cluster. What happens at which moment in between is
//! another thing than it was where the schedule comes from.

use super::super::world::pause;
use super::faults::Faults;
use esker_fault_schedule::{Kind, Schedule};
use std::time::Duration;

impl Faults {
    /// Does what the schedule says, at its times, or when the fault before is over.
    pub async fn replay(&mut self, schedule: &Schedule) -> Result<(), String> {
        let began_ms = self.replicas.ran_ms();
        for fault in &schedule.faults {
            let now_ms = self.replicas.ran_ms() - began_ms;
            pause(Duration::from_millis(fault.begun_ms.saturating_sub(now_ms))).await;
            self.call_clients().await;
            let leader = self.replicas.leader().await;
            let kind = fault.with_leader(&self.replicas.nodes(), leader);
            self.perform(&kind, Duration::from_millis(fault.lasts_ms())).await?;
            self.revive().await;
            self.boot_all().await?;
        }
        Ok(())
    }

    async fn perform(&mut self, kind: &Kind, lasts: Duration) -> Result<(), String> {
        match kind {
            Kind::Kill { nodes } => {
                for node in nodes {
                    self.stop(*node, None).await;
                }
                pause(lasts).await;
            }
            Kind::PowerLoss { nodes } => {
                for node in nodes {
                    self.crash(*node).await;
                }
                pause(lasts).await;
            }
            Kind::StandStill { nodes } => {
                self.count("nodes cut off for one that stood still");
                let all = self.replicas.nodes();
                let links = nodes.iter().flat_map(|node| all.iter().flat_map(|to| [(*node, *to), (*to, *node)]));
                self.cut(links.collect(), lasts).await;
            }
            Kind::Partition { links } => {
                self.count("partitions of a schedule");
                self.cut(links.clone(), lasts).await;
            }
            Kind::SlowNetwork { most_delay_ms, lost_percent } => {
                self.count("slow networks");
                self.replicas.network.disturb(Some((*most_delay_ms, *lost_percent)));
                pause(lasts).await;
                self.replicas.network.disturb(None);
            }
            Kind::ClockJump { node, ahead_ms } => {
                self.count("clock jumps");
                self.replicas.set_clock(*node, *ahead_ms);
            }
            Kind::FullDisk { node, is_killed } => {
                self.fill_disk(*node, lasts).await;
                if *is_killed {
                    self.stop(*node, None).await;
                }
            }
            Kind::RollingRestart { nodes } => self.restart_one_after_the_other(nodes).await?,
            Kind::Replace { node } => self.replace(Some(*node), false).await?,
            Kind::ReplaceFromBackup { node, .. } => self.replace(Some(*node), true).await?,
            Kind::Transfer { node } => self.transfer(*node).await,
        }
        Ok(())
    }
}
